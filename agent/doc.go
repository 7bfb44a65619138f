// Package agent speaks with coding agents: it decodes what their hooks send,
// answers them, puts our hooks into their settings, reads their transcripts,
// and makes the command lines that run them or continue a conversation.
//
// Each client has a file of its own; the functions here take its name first.
// What a client sends is read leniently, because the next version of it will
// send something else: an unknown field is ignored, a missing one is empty, a
// field of another type counts as missing. What a client is told is strict:
// only the fields that it knows, for one unknown field makes some of them
// ignore the whole answer.
//
// A transcript is never changed. To continue a conversation from an earlier
// point is to start the client the way it supports, if need be with a new file
// beside the old one.
//
// The package knows nothing about runs, checkpoints or moves. Where the home
// directory is, what the environment says and which binary is ours are fields.
package agent
