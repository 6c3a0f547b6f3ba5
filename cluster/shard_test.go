package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// shardOut has a worker write one of a checkpoint's files into a folder.
func shardOut(dir string, c *Checkpoint) error {
	const name = "caches-12"
	shard, err := WriteShard(dir, name, streamOf(c.Files[name]).Write)
	c.Shards = map[string]*Shard{name: shard}
	delete(c.Files, name)
	return err
}

// TestShards: files that workers wrote are a checkpoint's as those that it writes itself, and stay where they are until
// they are removed there.
func TestShards(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	c := sample(3)
	if err := shardOut(place, c); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second takes the place of the first
		path, size, err := Save(dir, c, 0)
		if err != nil || path != c.Folder(dir) {
			t.Fatal(path, err)
		}
		if _, want, _ := Save(t.TempDir(), sample(3), 0); size != want {
			t.Errorf("%d bytes, %d without shards", size, want)
		}
		if got, err := Load(path); err != nil || !reflect.DeepEqual(got, sample(3)) {
			t.Fatal(got, err)
		}
	}
	c.Shards["caches-12"].Remove()
	if list, _ := os.ReadDir(place); len(list) > 0 {
		t.Error(list)
	}
	if _, err := Load(c.Folder(dir)); err != nil {
		t.Error(err)
	}
	c.Position.Epoch++
	if _, _, err := Save(dir, c, 0); !errors.Is(err, os.ErrNotExist) {
		t.Error("saved without a shard:", err)
	}
	hidden(t, dir)
}

// TestShardsThatDoNotFit are refused before a checkpoint has them, and what one could not write is not left behind.
func TestShardsThatDoNotFit(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	c := sample(3)
	if err := shardOut(place, c); err != nil {
		t.Fatal(err)
	}
	os.Truncate(c.Shards["caches-12"].Path, 1)
	if _, _, err := Save(dir, c, 0); err == nil || !strings.Contains(err.Error(), "found 1 bytes, want the 2 that") {
		t.Error(err)
	}
	c.Shards["model"] = c.Shards["caches-12"]
	if _, _, err := Save(dir, c, 0); err == nil {
		t.Error("a shard took the place of the weights")
	}
	if _, err := WriteShard(filepath.Join(dir, "absent"), "caches-1", nil); err == nil {
		t.Error("written to a folder that does not exist")
	}
	hidden(t, dir)
}
