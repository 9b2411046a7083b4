package doris

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// Tagger gives backends their tags.
type Tagger interface {
	// Tag gives a backend other tags, all of them, if it has those that it had when
	// this was planned.
	Tag(ctx context.Context, at databaseAddress, member client.Node, from, to map[string]string) error
}

// setTags gives one backend other tags.
type setTags struct {
	at       databaseAddress
	pod      string
	member   client.Node
	from, to map[string]string
}

// tagsKey is by what a refusal is remembered.
func tagsKey(member string) string { return "tags of " + member }

// Describe says what is done.
func (o setTags) Describe() string {
	public := o.to[client.TagPublicEndpoint]
	if public == "" {
		return fmt.Sprintf("take %s back from %s (%s)", client.TagPublicEndpoint, o.member, o.pod)
	}
	return fmt.Sprintf("set %s of %s (%s) to %s", client.TagPublicEndpoint, o.member, o.pod, public)
}

// errTagsChanged says that somebody else came between.
var errTagsChanged = errors.New("its tags have changed a moment ago")

// tags carries one out. What is not done is seen when the database is asked again; what
// the database refuses is remembered for a while, and then on the set.
func (a *asker) tags(ctx context.Context, o setTags) error {
	tagger, can := a.nodes.(Tagger)
	if !can {
		return fmt.Errorf("doris cannot be asked to %s", o.Describe())
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	err := tagger.Tag(ctx, o.at, o.member, o.from, o.to)
	a.counted("change", endOf(err))
	return a.told(o.at, tagsKey(o.member.String()), err, answeredNo(err))
}

// Tag implements Tagger.
func (r reached) Tag(ctx context.Context, at databaseAddress, member client.Node, from, to map[string]string) error {
	doris, node, _, err := r.master(ctx, at)
	if err != nil {
		return err
	}
	backends, err := doris.Backends(ctx, node)
	if err != nil {
		return err
	}
	if needed, err := tagsNeeded(backends, member, from, to); err != nil || !needed {
		return err
	}
	return doris.SetTags(ctx, node, member, to)
}

// tagsNeeded tells whether a backend is still to be given its tags: that may have been
// done by a call whose answer got lost.
func tagsNeeded(backends []client.Backend, member client.Node, from, to map[string]string) (bool, error) {
	for i := range backends {
		if addressOf(&backends[i]) != member.String() {
			continue
		}
		switch has := backends[i].Tag.All; {
		case maps.Equal(has, to):
			return false, nil
		case !maps.Equal(has, from):
			return false, errTagsChanged
		}
		return true, nil
	}
	return false, nil // it is gone
}
