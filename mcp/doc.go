// Package mcp offers the verbs of a workspace as tools of the Model Context
// Protocol, so that an agent or an orchestrator can read recorded time and move
// along it.
//
// A tool that moves something shows its plan first, and carries out that plan
// and no other once it is named and confirmed. What a caller may do at all is a
// list of [Capability].
//
// The package turns arguments into calls of the front door, and answers into
// documents. It knows neither the ledger nor the store, prints nothing, and does
// not know where the workspace is: it is handed one for each call.
package mcp
