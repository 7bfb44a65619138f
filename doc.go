// Package retcon is the front door: it opens a workspace and offers every verb
// as a method.
//
//	w, err := retcon.Open(ctx, retcon.Options{Dir: dir, Now: time.Now})
//	…
//	defer w.Close()
//	c, err := w.Checkpoint(ctx, retcon.CheckpointOptions{Label: "before"})
//	…
//	_, err = w.Restore(ctx, retcon.RestoreOptions{Ref: "before"})
//
// A [Ref] names a checkpoint as a person types it. Errors go through [Explain],
// which chooses a code, a message and hints for every door alike.
//
// The package wires the rooms together. It holds no SQL, prints nothing, starts
// no process and reads neither the environment nor the clock: what it needs of
// them are fields of [Options].
package retcon
