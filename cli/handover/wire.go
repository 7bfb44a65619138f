package handover

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
)

// Call is an event that is handed over.
type Call struct {
	Agent, Event        string
	Home, XDGConfigHome string // of the hook's process
	Parent              int    // the process that it was started by
	Payload             []byte
}

// greeting begins a call, and names its form: who knows another one lets it be.
const greeting = "retcon hook 1\n"

// What the process that watches says, one after the other: whether it takes the
// call, and, when it has recorded it, the answer with its length before it.
const (
	Taken   = '+'
	Refused = '-'
)

// ErrGreeting: what came is no call, or one of another version.
var ErrGreeting = errors.New("not a call of this version")

// Bytes is the call as it is sent.
func (c Call) Bytes() []byte {
	b := []byte(greeting)
	for _, field := range []string{c.Agent, c.Event, c.Home, c.XDGConfigHome, strconv.Itoa(c.Parent)} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(c.Payload))), c.Payload...)
}

// ReadCall reads a call that was sent.
func ReadCall(r io.Reader) (Call, error) {
	hello := make([]byte, len(greeting))
	if _, err := io.ReadFull(r, hello); err != nil {
		return Call{}, err
	}
	if string(hello) != greeting {
		return Call{}, ErrGreeting
	}
	var fields [6][]byte
	for i := range fields {
		most := 4096
		if i == len(fields)-1 {
			most = PayloadMax
		}
		var err error
		if fields[i], err = readField(r, most); err != nil {
			return Call{}, err
		}
	}
	parent, err := strconv.Atoi(string(fields[4]))
	if err != nil {
		return Call{}, ErrGreeting
	}
	return Call{Agent: string(fields[0]), Event: string(fields[1]), Home: string(fields[2]), XDGConfigHome: string(fields[3]),
		Parent: parent, Payload: fields[5]}, nil
}

// Answered is an answer as it is sent, after Taken.
func Answered(answer []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)
}

func readField(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(most) {
		return nil, ErrGreeting
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
