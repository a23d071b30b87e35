// Package api is where racks and operators reach the cloud: frames over MQTT, requests over HTTP.
//
// Both transports prove who asks, look the call up in one table ([Calls]) and run the same handler; what differs is the
// envelope. Over MQTT ([Link]) a frame is opened with the rack's keys, refused and counted for what is wrong with it, and
// answered on the dn topic of its kind. Over HTTP ([Server]) a bearer says which rack it is, and the refusal's code
// decides the status. Operators have an API of their own below /v1/admin, on a loopback address or with a token.
//
// Nothing of a request is stored or logged here but ids, types and codes. openapi.yaml describes what is served; a test
// holds it to what the handlers take and give.
package api
