// Package foreign holds tests of a whole cloud against those who have no business there: other racks' credentials, frames
// that are not of now, old databases, and people who read its files. The programs are rackcloud and rackd as they are
// shipped, the intruder's are Debian's MQTT clients.
package foreign
