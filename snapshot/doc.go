// Package snapshot describes one frame of a run as an immutable value, and
// the difference of two.
//
// A state is a [Set] of rows, one for each task and one for whatever else a
// frame must bring back. Two sets with the same rows have the same root, in
// whatever order the rows came and whichever came and went before. A frame is
// kept as the delta against the one before it, and now and then as a keyframe
// with all rows; folding deltas onto a keyframe must lead to the recorded root,
// so that every loaded state has been verified.
//
// The package also reads how a person writes a place in history, RUN@POINT.
//
// It computes. It does not store, read files or the clock, or know what a task
// does or what a tree holds.
package snapshot
