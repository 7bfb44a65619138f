// Package timeline moves along recorded time: it plans what putting a worktree
// back to a checkpoint would do, carries the plan out so that a crash anywhere
// leaves the old state or the new one, and takes it back.
//
//	plan.go     what a move will do, as a value made without touching anything
//	preview.go  making the plan from the worktree and the ledger
//	owner.go    whose change is it: the run's, or somebody else's
//	mover.go    what can be asked, and who may ask
//	apply.go    the steps, in order
//	recover.go  settling a move whose process died
//
// It does not run tasks, does not know agents, and never asks a person.
package timeline
