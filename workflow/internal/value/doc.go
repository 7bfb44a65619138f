// Package value is what tasks are given and what they return, as canonical
// values: equal values have equal bytes, and no two values share them.
//
// The types and their use:
//
//   - [V]: a value. [FromStarlark], [FromGo] and [FromJSON] make one, with an
//     [*Error] that names the place when something is not data; [ToStarlark],
//     [ToGo] and [JSON] lead back.
//   - [Ref] and [Output]: a task's output as an argument, by the task's id
//     while it is declared, by its content when it is dispatched ([Resolve]).
//   - [Blob]: a string or bytes too large to be repeated in every declaration;
//     [Intern] takes them out, [Expand] puts them back.
//   - [Encode] and [Decode]: the bytes that are hashed and stored.
//   - [Difference] and [Overlay]: two values compared, and one laid over
//     another.
//   - [Failure]: an error that can be stored and comes back as it was.
//   - [Schema]: what a value must look like.
//
// The package does not know what a task is or does, and stores nothing: who
// interns a value keeps it.
package value
