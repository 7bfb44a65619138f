// Package object is retcon's object store: a directory of git objects that
// git itself can read, holding trees, blobs and commits by their SHA-1.
//
// It knows ids, bytes, packs and locks. It does not know what a worktree,
// a checkpoint or a reference is, never touches a repository of the user's
// except to read it or to hard-link from it, and runs no program.
//
//	Store.Read, Header, Stream   what is in it
//	Store.NewWriter              a capture: one pack, all of it or nothing
//	Store.Link, Import           sharing what the user's repository has
//	Store.Repack, Verify         gc and doctor
//
// # Who may do what at the same time
//
// Any number of goroutines may read one Store; any number of processes may
// read, write and link one directory. Packs are immutable and appear whole,
// by rename. One Repack runs at a time, and deletes only while nobody holds
// the shared lock (see Store.Shared): whoever asks Has and then records
// something that relies on the answer must hold it from the question until
// the record is durable.
//
// # What a crash leaves
//
// Temporary files, which CleanTemp removes once their owner is gone; never a
// partial object under a name that readers look at.
package object
