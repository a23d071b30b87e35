// Package cleanup puts a phone in order between two tasks: the home screen in
// front, the apps that the task has used stopped, the apps that it has installed
// gone, rotation, keyboard and animations as they were.
//
// What a phone came with is its baseline, taken when a rack meets it first. A
// phone is dirty from before the first write of a task ([Guard]) until [Run] has
// succeeded: if the rack dies in between, the phone is cleaned before its next
// task, and what lies on it must never become the baseline: that is for the rack
// to see to.
//
// [Plan] decides and [Run] acts; both can be repeated at any time.
package cleanup
