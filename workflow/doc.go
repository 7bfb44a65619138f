// Package workflow runs the tasks of a run, recording each frame; it resumes,
// and renders what was recorded again.
//
// A frame is one render of the body from the top against the log. The body runs
// once, in one live thread (one more per parallel branch) that blocks on a
// missing output; it is rendered from the top only to resume, to look at what
// an edit would run again, and to verify. Both give the same frames.
//
// The map of the package:
//
//   - a [Definition] is what is executed: the body's sources, pinned by digest;
//   - a body declares tasks, in a [Branch]; a [Handle] stands for the outcome of
//     one, and passing it on draws an edge;
//   - the engine dispatches a task when what it needs is settled. Its input
//     digest covers its declaration, the contents of what it was given and, if
//     it reads or writes files, the tree of its worktree. A successful result
//     with that digest is carried; otherwise the task runs;
//   - a place is a worktree that tasks run in. Tasks of one place are ordered as
//     declared: readers after the last writer, a writer after both. Parallel
//     branches that write get a place of their own, and are merged.
//
// The package does not move a run in time, and does not print.
package workflow
