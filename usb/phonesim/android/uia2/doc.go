// Package uia2 plays Appium's UiAutomator2 server, the program that a host installs on a phone to read its screen
// over HTTP: its status, sessions, settings, page source, screenshot and clipboard, and its errors. What it
// answers follows the public source of github.com/appium/appium-uiautomator2-server, release 10.6.
//
// A Server is made by New when the instrumentation starts; Serve speaks to one connection. Deleting the session
// ends the server, as the real one does. It starts no goroutine.
package uia2
