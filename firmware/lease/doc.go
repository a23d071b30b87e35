// Package lease says who may write to the phone of a slot.
//
// A Table holds at most one valid lease a slot: a task's, a person's hold, or recovery's. Whoever writes to a phone
// asks Lease.Check before each write; a lease that was released, has expired or was superseded refuses. Everyone else
// is refused with slot_busy, which names the holder and the end.
//
// A person who holds a slot may start a task on it: the task's lease then covers the hold, whose own Check refuses
// meanwhile, and the hold comes back when the task ends. Single acts of the holder borrow the hold.
//
// A sign's lease gives way: whoever else wants the slot gets it, and the sign's is ended. Lookup and Watch do not show it.
//
// Leases end on a monotonic clock that also counts time spent in suspend (CLOCK_BOOTTIME), because a board may have no
// wall clock, or may set it at any moment. The wall clock only appears in sentences.
package lease
