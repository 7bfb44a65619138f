// Package cassette is the tape of a run: every operation it carried out, with
// its arguments, its outcome and the worktree on either side, as cells of the
// ledger, and the way to have them served back instead of carrying them out
// again.
//
// What goes on the tape is redacted first, as a value, before anything is
// hashed or stored. Two operations are the same when they are the same after
// redaction; where it took something away, a keyed hash of the whole tells them
// apart, which is worth nothing without the store's key.
//
// A tape says what it does not hold. An output over the cap is kept to its
// head and marked; an operation that could not be recorded leaves a hole; a run
// that is not recorded says so in its row. Serving refuses all three by name.
//
// The package does not carry operations out, and does not move anything.
package cassette
