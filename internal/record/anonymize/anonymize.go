// Package anonymize makes a copy of a result that can be shown to anybody. Hosts, users, places of
// programs and all other names that people chose become host1, user1, path1 in the order in which
// they appear; free text is removed, or cut down to words that the tables here know; the run is
// moved to the midnight (UTC) of its day, with all distances kept. Nothing that is measured
// changes.
//
// The tables list the texts that are kept, not those that are removed: a text that nobody thought
// of does not come through.
package anonymize

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// File returns the copy of a result. It depends on nothing but the result.
func File(f *record.File) *record.File {
	v := &veil{names: map[string]string{}, count: map[string]int{}, shift: f.Campaign.Started.Sub(day(f.Campaign.Started))}
	out := *f
	v.over(reflect.ValueOf(&out).Elem(), "")
	out.Findings = left(f)
	return &out
}

// day returns the midnight before a time, in UTC: a time zone is a place.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// left counts the findings that were removed: they are sentences with names in them.
func left(f *record.File) []record.Finding {
	if len(f.Findings) == 0 {
		return nil
	}
	return []record.Finding{{What: fmt.Sprintf("%d findings are left out", len(f.Findings)), Why: "the result is anonymized, and they are free text"}}
}

// veil remembers the pseudonym of each name.
type veil struct {
	names map[string]string // by kind and name
	count map[string]int    // by kind
	shift time.Duration
}

// over anonymizes a value, and copies its parts. place is the type and the field that it is in.
func (v *veil) over(x reflect.Value, place string) {
	switch x.Kind() {
	case reflect.String:
		x.SetString(v.text(x.String(), place, x.Type().Name()))
	case reflect.Pointer:
		if !x.IsNil() {
			own := reflect.New(x.Type().Elem())
			own.Elem().Set(x.Elem())
			v.over(own.Elem(), place)
			x.Set(own)
		}
	case reflect.Slice:
		v.overAll(x, place)
	case reflect.Map: // the trials
		trials := map[int]record.Trial{}
		for _, id := range slices.Sorted(maps.Keys(x.Interface().(map[int]record.Trial))) {
			trial := reflect.New(x.Type().Elem()).Elem()
			trial.Set(x.MapIndex(reflect.ValueOf(id)))
			v.over(trial, place)
			trials[id] = trial.Interface().(record.Trial)
		}
		x.Set(reflect.ValueOf(trials))
	case reflect.Struct:
		if t, is := x.Interface().(time.Time); is {
			x.Set(reflect.ValueOf(v.time(t)))
			return
		}
		for i := range x.NumField() {
			if in := x.Type().Name() + "." + x.Type().Field(i).Name; slices.Contains(dropped, in) {
				x.Field(i).SetZero()
			} else {
				v.over(x.Field(i), in)
			}
		}
	}
}

// overAll anonymizes the elements of a list. Texts that become empty are removed.
func (v *veil) overAll(x reflect.Value, place string) {
	kept := reflect.MakeSlice(x.Type(), 0, x.Len())
	for i := range x.Len() {
		own := reflect.New(x.Type().Elem()).Elem()
		own.Set(x.Index(i))
		if v.over(own, place); own.Kind() != reflect.String || own.Len() > 0 {
			kept = reflect.Append(kept, own)
		}
	}
	if !x.IsNil() {
		x.Set(kept)
	}
}

// text anonymizes a text by the rule of its place, or of its type.
func (v *veil) text(text, place, kind string) string {
	of := rules()[place]
	if of == nil {
		of = rules()[kind]
	}
	if of == nil || text == "" {
		return ""
	}
	return of(v, text)
}

// call returns the pseudonym of a name.
func (v *veil) call(kind, name string) string {
	key := kind + " " + name
	if v.names[key] == "" {
		v.count[kind]++
		v.names[key] = fmt.Sprintf("%s%d", kind, v.count[kind])
	}
	return v.names[key]
}

// host returns the pseudonym of a target as the user named it, such as me@box.
func (v *veil) host(target string) string {
	at := strings.LastIndexByte(target, '@')
	switch {
	case target == record.Loopback:
		return target
	case at < 0:
		return v.call("host", target)
	}
	user := ""
	if at > 0 {
		user = v.call("user", target[:at])
	}
	return user + "@" + v.call("host", target[at+1:])
}

func (v *veil) path(path string) string {
	if slices.Contains(places, path) {
		return path
	}
	return v.call("path", path)
}

func (v *veil) time(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Add(-v.shift)
}

func (v *veil) policy(name string) string {
	if _, err := alg.LookupPolicy(name); err == nil || name == "none" {
		return name
	}
	return v.call("policy", name)
}

// loginWords keeps names of algorithms, and the words in names of kinds of login.
func (v *veil) loginWords(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		_, kex := alg.Lookup(alg.Kex, word)
		_, key := alg.Lookup(alg.HostKey, word)
		return !kex && !key && !loginWord().MatchString(word)
	}), " ")
}
