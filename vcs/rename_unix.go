//go:build unix

package vcs

import "golang.org/x/sys/unix"

// testOnlyPlainRename makes every filesystem one that cannot exchange names.
var testOnlyPlainRename bool

// displacedSuffix is the name, in the stage, of a file on its way to its place
// there, where two names cannot be exchanged in one step.
const displacedSuffix = ".x"

// exchange swaps from, in the stage, with to. Where the filesystem cannot do
// that in one step there is a moment at which nothing has the name to.
func exchange(fromfd int, from string, tofd int, to string) error {
	err := unsupported
	if !testOnlyPlainRename {
		err = renameat2(fromfd, from, tofd, to, renameSwap)
	}
	if !cannot(err) {
		return err
	}
	if err := renameNew(tofd, to, fromfd, from+displacedSuffix); err != nil {
		return err
	}
	if err := renameNew(fromfd, from, tofd, to); err != nil {
		if back := renameNew(fromfd, from+displacedSuffix, tofd, to); back != nil {
			return back
		}
		return err
	}
	return renameNew(fromfd, from+displacedSuffix, fromfd, from)
}

// renameNew moves from to to and fails with EEXIST when something is there.
func renameNew(fromfd int, from string, tofd int, to string) error {
	err := unsupported
	if !testOnlyPlainRename {
		err = renameat2(fromfd, from, tofd, to, renameExcl)
	}
	if !cannot(err) {
		return err
	}
	var st fileStat
	if err := statName(tofd, to, &st); err != unix.ENOENT {
		if err == nil {
			err = unix.EEXIST
		}
		return err
	}
	return retry(func() error { return unix.Renameat(fromfd, from, tofd, to) })
}

var unsupported error = unix.EINVAL

// cannot tells that the filesystem does not know the kind of rename.
func cannot(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP || err == unix.EOPNOTSUPP
}
