package copy

import (
	"errors"
	"fmt"
	"io/fs"

	"sshpace/internal/ssh/sftp"
)

// backup keeps a file that is about to be replaced, as a hard link or, if the host makes none, as a
// copy. It replaces an older backup in one step. The file keeps its own name all the time.
func (p *put) backup(name string) error {
	if p.Backup == "" {
		return nil
	}
	was, err := p.client.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept := name + p.Backup
	spare := newPart(p.host, kept).fresh()
	if err == nil {
		p.made.add(spare, made{})
		if err = p.client.Link(name, spare).Wait(); err == nil { // some servers only say that they have made it
			_, err = p.client.Lstat(spare)
		}
		if isStatus(err) {
			err = p.duplicate(name, spare, was)
		}
	}
	if err == nil {
		err = p.client.Replace(spare, kept).Wait()
	}
	if isStatus(err) && p.client.Remove(kept) == nil { // it does not rename over a file
		err = p.client.Rename(spare, kept).Wait()
	}
	if !p.isOver(err) {
		p.drop(spare) // it stays if both names were one file already
	}
	if err != nil {
		return fmt.Errorf("it is not replaced, because it cannot be kept as %s: %w", kept, plain(err))
	}
	return nil
}

// duplicate copies a file or link on the host.
func (p *put) duplicate(from, to string, was sftp.Attrs) error {
	if was.IsLink() {
		target, err := p.client.Readlink(from)
		if err == nil {
			err = p.learnIn(newPart(p.host, to))
		}
		if err == nil {
			err = p.client.Symlink(target, to)
		}
		return err
	}
	in, err := p.client.Open(from, sftp.Read, 0)
	if err != nil {
		return err
	}
	defer func() { in.Close().Wait() }()
	out, err := p.client.Open(to, sftp.Write|sftp.Create|sftp.Excl, was.Perm()|0o600)
	if err != nil {
		return err
	}
	sum := newCksum()
	err = p.read(in, 0, int64(was.Size), func(b []byte, at int64) error {
		sum.Write(b)
		return out.WriteAt(b, at).Wait()
	})
	if closed := out.Close().Wait(); err == nil {
		err = closed
	}
	if err == nil {
		err = p.readBack(checked{to, sum.sum(), sum.size})
	}
	was.Has &^= sftp.HasSize
	p.client.Setstat(to, was).Wait() // as far as it can be: not every account gives files away
	return err
}
