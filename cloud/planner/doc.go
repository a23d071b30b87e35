// Package planner is the planner proxy: a rack asks for the decision of one turn, and the proxy asks the provider of the
// tenant's active profile with the cloud's own key. It knows no transport: cloud/api brings requests of both and sends
// back what [Proxy.Decide] returns.
//
// A request goes this way:
//
//   - It is checked and bounded. Nothing in it can choose a provider, model, key or timeout.
//   - Its row is written, with a hash of what it asks. A request that has an answer already gets it again and costs
//     nothing; one that another replica works on is waited for; one whose replica is gone is taken over.
//   - The active profile is read from the database, for each request anew, and its credential is opened.
//   - Room in the profile's limits is taken, and the caller is told how long the call may take.
//   - The provider is called, once. Retries are inside that call, within the profile's timeout.
//   - A decision gets its step and is committed before Decide returns; a failure is written to the request's row. A
//     decision is never made up, mended or taken from another request.
//
// Once a request has its row, it is brought to its end even if whoever asked is gone: the answer may be paid for, and
// the request can come again. The profile's timeout alone bounds that.
//
// Screenshots live in the memory of the call and go out on the wire to the provider: they are in no row, log, error
// or file. What is logged of a request are ids, codes and figures, never its text.
package planner
