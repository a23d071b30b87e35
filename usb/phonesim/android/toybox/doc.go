// Package toybox is the small set of file and text commands of a simulated phone,
// with the options that tools use over adb and toybox's way of saying things.
//
// A command is a Func: it works on the files of a memfs.View and the streams of
// its process, and returns the exit status. Commands that tell of the phone
// itself (ps, df, getprop...) are not here.
package toybox
