// Package crash names the places where a power cut would hurt.
//
// Code that makes something durable in steps calls Point between them. A test
// sets Hook, learns the names by running once, and then dies at each of them
// in turn. The package knows nothing of what the steps do, and in a program
// that sets no Hook a point costs one comparison.
package crash

// Hook, when set, is called at every point with the point's name. It may end
// the process and never return. It is for tests: set it before the code under
// test starts and do not change it while that code runs.
var Hook func(name string)

// Point marks a place between two durable steps. The name says the room and
// the step about to be taken, as in "ledger.commit", and the same name may be
// passed many times: a test counts the visits.
func Point(name string) {
	if Hook != nil {
		Hook(name)
	}
}
