// Package browsertest drives Debian's Chromium before the technician's page, for tests with the build tag browser: as people do, by
// clicks, keys and what they can see, with axe-core as the judge of accessibility. `make setup` installs both. Screenshots are left
// in the folder page of the project's cache. A Desk has one tab; its steps are bounded, and one that fails ends the test.
package browsertest
