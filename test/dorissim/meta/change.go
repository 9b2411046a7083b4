package meta

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrDropNotSafe is what DROP BACKEND answers: the statement that means it is DROPP.
//
//nolint:staticcheck // the text is the server's
var ErrDropNotSafe = errors.New("It is highly NOT RECOMMENDED to use DROP BACKEND stmt." +
	"It is not safe to directly drop a backend. All data on this backend will be discarded permanently. " +
	"If you insist, use DROPP BACKEND stmt")

// AddFrontend announces a member.
func (s *State) AddFrontend(role, addr string) error {
	host, port, err := SplitAddr(addr)
	if err != nil {
		return err
	}
	if _, ok := s.Frontend(addr); ok {
		return fmt.Errorf("frontend already exists %s", addr)
	}
	name := fmt.Sprintf("fe_%08x_%d", s.ID(), port)
	s.Frontends = append(s.Frontends, Frontend{Name: name, Host: host, EditLogPort: port, Role: role})
	return nil
}

// DropFrontend removes a member. The master itself cannot be dropped.
func (s *State) DropFrontend(role, addr, master string) error {
	f, ok := s.Frontend(addr)
	if !ok {
		return fmt.Errorf("frontend does not exist[%s]", addr)
	}
	if f.Role != role {
		return fmt.Errorf("%s does not exist[%s]", role, addr)
	}
	if addr == master {
		return errors.New("can not drop current master node")
	}
	s.Frontends = slices.DeleteFunc(s.Frontends, func(f Frontend) bool { return f.Addr() == addr })
	return nil
}

// Join marks a member as taking part.
func (s *State) Join(addr string) error {
	for i := range s.Frontends {
		if s.Frontends[i].Addr() == addr {
			s.Frontends[i].Joined = true
			return nil
		}
	}
	return fmt.Errorf("frontend does not exist[%s]", addr)
}

// AddBackend announces a backend.
func (s *State) AddBackend(addr string, tags map[string]string) error {
	host, port, err := SplitAddr(addr)
	if err != nil {
		return err
	}
	if s.Backend(addr) != nil {
		return fmt.Errorf("Same backend already exists[%s]", addr) //nolint:staticcheck // the text is the server's
	}
	s.Backends = append(s.Backends, Backend{ID: s.ID(), Host: host, HeartbeatPort: port, Tags: tags})
	return nil
}

// DropBackend removes a backend with its replicas, whatever they hold.
func (s *State) DropBackend(addr string) error {
	b := s.Backend(addr)
	if b == nil {
		return fmt.Errorf("backend does not exists[%s]", addr)
	}
	id := b.ID
	for _, p := range s.Tablets() {
		p.Tablet.Replicas = p.Tablet.Without(id)
	}
	s.Backends = slices.DeleteFunc(s.Backends, func(b Backend) bool { return b.ID == id })
	return nil
}

// Decommission marks a backend for draining, or takes the mark away. Draining is refused when fewer backends than a
// table's replicas would be left.
func (s *State) Decommission(addr string, on bool) error {
	b := s.Backend(addr)
	if b == nil {
		return fmt.Errorf("Backend does not exist[%s]", addr)
	}
	if !on && !b.Decommissioned {
		return fmt.Errorf("Backend is not decommissioned[%s]", addr)
	}
	if on {
		left := 0
		for _, other := range s.Backends {
			if !other.Decommissioned && other.ID != b.ID {
				left++
			}
		}
		for _, p := range s.Tablets() {
			if p.Table.ReplicationNum > left {
				return fmt.Errorf("it will cause insufficient backends: table %s.%s needs %d, %d are left",
					p.Database.Name, p.Table.Name, p.Table.ReplicationNum, left)
			}
		}
	}
	b.Decommissioned = on
	return nil
}

// Errors of the tags of a backend.
//
//nolint:staticcheck,revive // the text is the server's
var (
	errNoLocation = errors.New("Backend must have location type tag. Eg: 'tag.location' = 'xxx'.")
	errMultiTags  = errors.New("Not support multi tags for Backend now. You can set 'enable_multi_tags=true' in fe.conf to enable this feature.")
)

// tagText is what a tag and its value look like.
var tagText = regexp.MustCompile(`^[a-z][a-z0-9_]{0,32}$`)

// TagRules say which tags a frontend takes.
type TagRules struct {
	// Endpoints tells that it knows the tags of endpoints: their values are no names,
	// and they do not count as further tags.
	Endpoints bool
	// Multi lets a backend have several tags.
	Multi bool
}

// Check tells what is wrong with tags that a backend shall have, all of them.
func (r TagRules) Check(tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	counted := 0
	for k, v := range tags {
		if r.Endpoints && (k == "public_endpoint" || k == "private_endpoint") {
			continue
		}
		counted++
		if !tagText.MatchString(k) || !tagText.MatchString(v) {
			return fmt.Errorf("Invalid tag format: %s:%s", k, v) //nolint:staticcheck // the text is the server's
		}
	}
	switch {
	case tags["location"] == "":
		return errNoLocation
	case counted > 1 && !r.Multi:
		return errMultiTags
	}
	return nil
}

// TagsIn are the tags among properties, nil where there are none.
func TagsIn(properties map[string]string) map[string]string {
	var tags map[string]string
	for k, v := range properties {
		if name, is := strings.CutPrefix(k, "tag."); is {
			if tags == nil {
				tags = map[string]string{}
			}
			tags[name] = strings.ReplaceAll(v, " ", "")
		}
	}
	return tags
}

// ModifyBackend sets properties of a backend. Tags take the place of all that it had.
func (s *State) ModifyBackend(addr string, properties map[string]string) error {
	b := s.Backend(addr)
	if b == nil {
		return fmt.Errorf("backend does not exists[%s]", addr)
	}
	if tags := TagsIn(properties); tags != nil {
		b.Tags = tags
	}
	for k, v := range properties {
		switch {
		case k == "disable_query":
			b.QueryDisabled = strings.EqualFold(v, "true")
		case k == "disable_load":
			b.LoadDisabled = strings.EqualFold(v, "true")
		case strings.HasPrefix(k, "tag."):
		default:
			return fmt.Errorf("unknown properties setting for key [%s]", k)
		}
	}
	return nil
}

// CreateUser makes an account.
func (s *State) CreateUser(name, hash string, ifNotExists bool) error {
	if _, ok := s.Users[name]; ok {
		if ifNotExists {
			return nil
		}
		return fmt.Errorf("User `%s`@`%%` already exist", name)
	}
	s.Users[name] = &User{Name: name, Hash: hash}
	return nil
}

// DropUser removes an account.
func (s *State) DropUser(name string, ifExists bool) error {
	if name == "root" {
		return errors.New("Can not drop root user") //nolint:staticcheck // the text is the server's
	}
	if _, ok := s.Users[name]; !ok && !ifExists {
		return fmt.Errorf("User `%s`@`%%` does not exist", name)
	}
	delete(s.Users, name)
	return nil
}

// SetPassword changes the hash of an account.
func (s *State) SetPassword(name, hash string) error {
	u, ok := s.Users[name]
	if !ok {
		return fmt.Errorf("user `%s`@`%%` does not exist", name)
	}
	u.Hash = hash
	return nil
}

// Grant adds global privileges to an account. Only root may have Node_priv from the start; others are granted it.
func (s *State) Grant(name string, privileges []string) error {
	u, ok := s.Users[name]
	if !ok {
		return fmt.Errorf("user `%s`@`%%` does not exist", name)
	}
	for _, p := range privileges {
		if !slices.Contains(u.Privileges, p) {
			u.Privileges = append(u.Privileges, p)
		}
	}
	slices.Sort(u.Privileges)
	return nil
}

// Holds tells whether the account has a privilege.
func (u *User) Holds(privilege string) bool { return slices.Contains(u.Privileges, privilege) }

// PasswordHash returns the stored form of a password.
func PasswordHash(password string) string {
	if password == "" {
		return ""
	}
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}
