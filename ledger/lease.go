package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Lease is a resource held by a process. The Token is higher than that of
// every lease before it, of any resource: who still acts under a lower one has
// been replaced.
type Lease struct {
	Resource string
	Owner    Owner
	Token    int64
	Acquired time.Time
	Expires  time.Time // zero for never
}

const leaseColumns = `resource, token, acquired_ms, expires_ms, ` + ownerColumns

func readLease(s scanner) (l Lease, err error) {
	var acquired int64
	var expires sql.NullInt64
	err = s.Scan(append([]any{&l.Resource, &l.Token, &acquired, &expires}, l.Owner.dest()...)...)
	l.Acquired, l.Expires = fromMillis(acquired), maybeMillis(expires)
	return l, err
}

// Acquire takes a resource for an owner. A ttl of zero or less never expires.
//
// The resource is taken from an owner of whom alive says false. Without such a
// function the age decides: it is taken when the lease has expired. Otherwise
// the error is a *LockedError, also when owner itself holds it.
func (tx *Tx) Acquire(resource string, owner Owner, ttl time.Duration, alive func(Owner) bool) (Lease, error) {
	token, err := tx.next("token")
	if err != nil {
		return Lease{}, err
	}
	return tx.acquire(resource, owner, token, ttl, alive)
}

func (tx *Tx) acquire(resource string, owner Owner, token int64, ttl time.Duration, alive func(Owner) bool) (Lease, error) {
	held, err := tx.Lease(resource)
	if err == nil && tx.stands(held, alive) {
		return Lease{}, &LockedError{Resource: resource, Owner: held.Owner, Since: held.Acquired}
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Lease{}, err
	}
	l := Lease{Resource: resource, Owner: owner, Token: token, Acquired: tx.Now()}
	if ttl > 0 {
		l.Expires = l.Acquired.Add(ttl)
	}
	return l, tx.putLease(l)
}

// stands reports whether a lease still keeps others out.
func (tx *Tx) stands(l Lease, alive func(Owner) bool) bool {
	if alive != nil {
		return alive(l.Owner)
	}
	return l.Expires.IsZero() || tx.Now().Before(l.Expires)
}

func (tx *Tx) putLease(l Lease) error {
	if _, err := tx.exec(`DELETE FROM lease WHERE resource=?`, l.Resource); err != nil {
		return fmt.Errorf("lease %s: %w", l.Resource, err)
	}
	_, err := tx.exec(`INSERT INTO lease(`+leaseColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{l.Resource, l.Token, millis(l.Acquired), millis(l.Expires)}, l.Owner.values()...)...)
	if err != nil {
		return fmt.Errorf("lease %s: %w", l.Resource, err)
	}
	return nil
}

// WorkflowResource is the lease of the process that runs a workflow in a
// worktree.
func WorkflowResource(worktree int64) string { return fmt.Sprintf("workflow/worktree/%d", worktree) }

// Renew lets a lease expire ttl from now. ErrFenced when it was released or
// taken over.
func (tx *Tx) Renew(l Lease, ttl time.Duration) (Lease, error) {
	l.Expires = time.Time{}
	if ttl > 0 {
		l.Expires = tx.Now().Add(ttl)
	}
	n, err := tx.exec(`UPDATE lease SET expires_ms=? WHERE resource=? AND token=?`, millis(l.Expires), l.Resource, l.Token)
	return l, fenced(n, err, "lease %s", l.Resource)
}

// Release gives a resource back. ErrFenced when it was taken over, or released
// before.
func (tx *Tx) Release(l Lease) error {
	n, err := tx.exec(`DELETE FROM lease WHERE resource=? AND token=?`, l.Resource, l.Token)
	return fenced(n, err, "lease %s", l.Resource)
}

// Lease returns who holds a resource, or ErrNotFound when nobody does.
func (tx *Tx) Lease(resource string) (Lease, error) {
	l, err := one(tx, readLease, `SELECT `+leaseColumns+` FROM lease WHERE resource=?`, resource)
	if err != nil {
		return Lease{}, fmt.Errorf("lease %s: %w", resource, err)
	}
	return l, nil
}

// Leases returns all that are held.
func (tx *Tx) Leases() ([]Lease, error) {
	return all(tx, readLease, `SELECT `+leaseColumns+` FROM lease ORDER BY resource`)
}

// fenced turns an update of no row into ErrFenced.
func fenced(n int64, err error, format string, args ...any) error {
	if err == nil && n == 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}
