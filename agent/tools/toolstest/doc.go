// Package toolstest is a phone for tests of what stands on package tools: a list
// of screens that react to what is done to them.
//
//	p := toolstest.New(&perception.Scene{...})
//	out, err := tools.Default().Execute(ctx, p.Env(), decision)
//	p.Acts() // what reached the phone, such as "tap 500,300"
//
// By itself the phone does what every phone does: a touch puts the cursor into
// the field under it and opens the keyboard, typed text goes to the end of that
// field, back closes the keyboard. Everything else comes from On, which is
// called after each act and may change what is shown. Refuse may fail an act
// before it is done, as a fence or a cable does.
package toolstest
