// Package redact takes secrets out of what leaves the machine or goes on the
// tape. It knows JSON-like values and text, and not where they came from.
//
// A secret is known by its name (the value of "password", of API_KEY=, of
// --token), by the form well-known credentials have, or because the caller
// named it. There is no guessing by entropy: commit ids, checksums and
// integrity strings look just as random, and a cell whose arguments are full of
// holes can be neither read nor matched.
//
// What is taken out is replaced by a marker, [redacted], or
// [redacted:github-token] where the kind is known. The same input gives the
// same output; what was redacted once is not changed again; JSON stays JSON.
// The time is linear in the length of the input.
package redact
