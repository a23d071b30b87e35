// Package popup knows the popups that get in the way of most tasks, and how to
// be rid of them: a list of watchers, each says what a popup looks like and which
// of its buttons closes it.
//
// [Find] looks for one on a scene and presses nothing itself. No watcher that is
// asked without consent names a button that accepts anything: it declines,
// postpones, waits or goes on. Watchers with Consent, which grant permissions and
// accept terms, are for tasks that may do so.
//
// What is on a screen is an app's own text and may be made to look like a popup.
// All that this can bring about is a touch of a button that declines something.
package popup
