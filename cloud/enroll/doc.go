// Package enroll makes racks known and tells who is speaking.
//
// One enrolment issues one set: rack id, bearer, MAC secret and client certificate. An [Office] mints, rotates and revokes
// sets as a whole, each in one transaction of the store; what a rack needs of it leaves once, as a [wire.Bundle], and is
// kept nowhere: the database has the bearer's hash, the sealed secret and the certificate's fingerprint.
//
// The same Office proves callers. Over HTTP a rack shows its bearer ([Office.Bearer]), over MQTT the MAC of its frames
// ([Office.Keys]); no third credential exists. At the broker it shows its certificate or a password that is derived from
// the MAC secret and opens nothing else ([Office.Authenticate]). The first proof of a new set ends the older ones.
//
// An [Authority] is the installation's own: made once, it signs the racks' certificates and what the listeners show.
package enroll
