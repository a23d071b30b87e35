// Package apk reads of an Android package what a simulated package manager needs to know: the names, versions,
// permissions and components of its binary manifest. What it is given is not trusted: sizes, counts and
// depths are bounded, and nothing is executed or unpacked but the manifest.
//
// Formats: AOSP frameworks/base/libs/androidfw/include/androidfw/ResourceTypes.h (binary XML) and the zip
// specification. Signatures are not checked.
package apk
