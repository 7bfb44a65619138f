// Package repo is what a user's git repository says about itself, read from
// its files.
//
// It finds the repository a directory belongs to, and reads its
// configuration, refs, index and attributes without running git and without
// taking a lock. It does not read objects, does not look at worktree files,
// and does not know what a checkpoint is.
//
//	r, err := repo.Discover(dir, repo.Options{Home: home})
//	head, err := r.Head()
//	index, err := r.ReadIndex(repo.IndexOptions{})
//
// Reading is forgiving: a configuration line that cannot be parsed is a
// [Warning], an index in a form this package does not understand is marked
// Degraded, and a repository whose objects or refs are in a foreign format
// says so in [Repo.FilesOnly]. Only what a caller must not overlook is an
// error.
//
// Nothing is written but by [Repo.WriteHead], [Repo.WriteRef],
// [Repo.WriteIndex] and [Repo.WriteRawIndex], which follow git's own locking
// rules. The environment is never consulted: GIT_DIR and its relatives do not
// exist here, and the home directory is a field of [Options].
//
// Imports: the standard library, golang.org/x/sys and ignore, for patterns.
package repo
