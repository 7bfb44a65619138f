// Package ledger is the one durable book: what was recorded, where it was
// kept, what was moved and by whom, in one SQLite file.
//
// The tables and their use:
//
//   - [Worktree]: a directory tree being worked in, known by its path and by
//     the identity of its root directory.
//   - [Run] and [Attempt]: one execution, and each try of a task in it, with
//     what it was given and what came out, by which results are found again.
//   - [Branch], [Frame] and [Event]: the states a run went through, and what
//     happened on the way. A frame is what has changed, and names the root of
//     the whole; now and then a keyframe holds all of it, so that any state is
//     loaded in a time that does not depend on how many there are, and is
//     verified. A branch is where frames are appended. To go back is to begin
//     another branch at an earlier frame, to fork is to begin one in another
//     run; nothing is copied, and nothing deleted.
//   - contents: larger bodies under their SHA-256, each stored once.
//   - [Signal]: what was sent to a run and waits to be taken.
//   - [Cell]: the tape, one row for each recorded operation of a run.
//   - [Transcript]: our copy of what a client wrote about a conversation.
//   - [Checkpoint]: a worktree commit with the reason it was taken. Its number
//     is never given to another one, even after it was deleted.
//   - [Op]: the journal of moves. A row is opened before a move touches
//     anything, advanced under a fencing token, and closed once.
//   - [Lease]: who holds a resource, with the token that fences out the owner
//     before.
//   - [AuditRow]: what changed, by whom; insert only, each row hashed over the
//     one before.
//
// All access is through closures:
//
//	err := db.Update(ctx, func(tx *ledger.Tx) error { … })
//
// [DB.View] reads one consistent state. [DB.Update] writes, and survives the
// death of the process. [DB.Commit] writes, and survives the loss of power as
// well; it is for the steps of a move. A closure that returns an error leaves
// nothing behind.
//
// Any number of processes may share a ledger on one host. Writers wait for each
// other in an operating system lock beside the file, which the kernel drops
// when its holder dies. On a network file system, where the shared memory of
// write-ahead logging cannot work, a rollback journal is used instead; see
// [DB.Journal].
//
// A [Head] is a loaded state that can be appended to. Appending is guarded: it
// is refused when somebody else has appended, when an operation has closed the
// branch, or has cut it off. What nothing needs any more is deleted by
// [DB.PurgeBranches] and [DB.SweepContents] alone, a little at a time.
//
// Rows are ordered by number, never by time: clocks step. Times are kept to
// the millisecond.
//
// The package does not know what a commit identifier means, what an agent is,
// when a move is allowed, or whether a process is alive; it is told.
package ledger
