package doris

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// tagged is what becomes of the tags of one member: nil tags stay as they are, record is
// what is remembered of it, and theirs an address that somebody else gave.
type tagged struct {
	tags   map[string]string
	record []string
	theirs string
}

// endpointTags are the tags of one member, and which of them are ours.
type endpointTags struct {
	all map[string]string
	// mine are the public endpoints that the operator gave, has the one that it has.
	mine []string
	has  string
	// inside is its own address, which is its private endpoint by our doing.
	inside            string
	ours, ourPrivate  bool
	privateAsItShould bool
}

func (e *publishing) tagsOf(b *client.Backend) endpointTags {
	t := endpointTags{all: b.Tag.All, mine: e.recorded.Members[addressOf(b)], has: b.Tag.All[client.TagPublicEndpoint]}
	t.inside = net.JoinHostPort(b.Host, strconv.Itoa(int(b.HTTPPort)))
	private := b.Tag.All[client.TagPrivateEndpoint]
	host, _, _ := net.SplitHostPort(private)
	t.ours = t.has == "" || among(t.mine, t.has)
	t.ourPrivate = private == "" || len(t.mine) > 0 && strings.EqualFold(host, b.Host)
	t.privateAsItShould = !t.ourPrivate || strings.EqualFold(private, t.inside)
	return t
}

// of judges one member by the tags that it has.
func (e *publishing) of(b *client.Backend) tagged {
	t := e.tagsOf(b)
	switch {
	case b.Tag.CloudUniqueID != "":
		return tagged{record: t.mine}
	case e.wanted:
		return e.given(t, b)
	case t.has == "" || !t.ours:
		return tagged{} // nothing of it is ours any more
	}
	tags := t.located()
	delete(tags, client.TagPublicEndpoint)
	if t.ourPrivate {
		delete(tags, client.TagPrivateEndpoint)
	}
	return tagged{tags: tags, record: t.mine}
}

// given judges a member that shall have an address outside.
func (e *publishing) given(t endpointTags, b *client.Backend) tagged {
	same := strings.EqualFold(t.has, e.public)
	switch {
	case e.public == "", b.HTTPPort == 0: // none yet, or not heard of yet
		return tagged{record: t.mine}
	case !t.ours && !same:
		return tagged{record: t.mine, theirs: t.has}
	case !t.ours:
		return tagged{} // somebody else gave it the same
	case same && t.privateAsItShould:
		return tagged{record: []string{e.public}}
	}
	tags := t.located()
	tags[client.TagPublicEndpoint] = e.public
	if t.ourPrivate {
		tags[client.TagPrivateEndpoint] = t.inside
	}
	others := slices.DeleteFunc(slices.Clone(t.mine), func(v string) bool { return v == e.public })
	return tagged{tags: tags, record: append(others, e.public)}
}

// located are all the tags that there are, with a location, without which Doris takes
// none.
func (t endpointTags) located() map[string]string {
	tags := map[string]string{"location": "default"}
	maps.Copy(tags, t.all)
	return tags
}

func among(list []string, value string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, value) })
}
