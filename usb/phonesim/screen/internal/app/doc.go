// Package app holds what a simulated app is made of: screens, widgets, texts, steps and the tiny
// expression language that joins them to the app's state.
//
// Load reads every app of a file system, checks it completely and returns a Bundle. After Load nothing
// of a Bundle changes, so that any number of engines may share one; what changes while an app runs
// (variables, lists) is copied out of it by NewState.
//
// The format is described for authors in APPS.md of the parent package.
package app
