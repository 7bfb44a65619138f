// Package checkpoint joins the two books: a worktree captured by vcs becomes a
// row of the ledger, in that order, so that no row ever names a commit that is
// not whole in the store.
//
// It also decides what of the recorded past is kept: see [Prune], and [Live]
// for what the store must not delete.
//
// The package does not move anything, and does not know why a checkpoint was
// asked for; it is told.
package checkpoint
