// Package sideeffect knows what was done outside the worktree, how to recognise
// it, and how it is undone.
//
//   - [Effect]: one thing done outside, with its status, its idempotency key
//     and its compensation. The rules about which status may follow which are
//     [Effect.Settle] and its neighbours; they compute, and touch nothing.
//   - [Compensation]: how an effect is undone, as data. It is stored with the
//     effect, so that an edited workflow or configuration does not disable it.
//   - [Rules]: recognise the effects of a tool call, from the command line as a
//     shell would read it, or from what an MCP server says about its tool.
//   - [Resolve] and [Call]: a compensation with its values filled in, ready to
//     be carried out, and what came of it.
//   - [Boundary]: what must happen to a list of effects before the history they
//     belong to can be discarded.
//
// Recognition fails towards noticing: a verb that is not known to be harmless
// is an effect, and so is a line that cannot be read and mentions a known tool.
// It cannot see into scripts and programs: what ./deploy.sh or make does is
// recorded only if a rule names it.
//
// The package does not store, and does not know git, runs, or who asks.
package sideeffect
