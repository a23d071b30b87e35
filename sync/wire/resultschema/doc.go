// Package resultschema holds the result of a task to the JSON Schema that the
// task came with. Cloud and rack use it alike, so that what the one takes the
// other takes too.
//
// The schemas are those of draft 2020-12 without references: no $ref, and so
// nothing that is fetched, calls itself or grows while it is checked. A keyword
// that is not checked, format among them, is refused, so that nothing is believed
// to be checked that is not.
package resultschema
