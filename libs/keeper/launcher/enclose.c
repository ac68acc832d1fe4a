// Builds the root directory of one session: the host's files under the same names, except for private
// directories.
//
//   private   /workspace  /tmp (also as /var/tmp)  /dev/shm  /dev/pts  /proc  /sys/fs/cgroup (the session's, read-only)
//   added     /.shellfleet (keeper and socket, read-only)  /.shellfleet-run (the keeper's directory)
//   hidden    the directories of --hide
#define _GNU_SOURCE
#include "fail.h"
#include "launch.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

// Directory in which the root directory is built. Files that this hides are reached by descriptors that were opened
// before the build.
static const char ROOT[] = "/tmp";
static const uint64_t RUN_BYTES = 16 << 20;

enum { PLAIN = MS_NOSUID | MS_NODEV };
enum { OPENAT2 = 437, RESOLVE_NO_SYMLINKS = 4 }; // of Linux 5.6; not every C library knows them

static const char *in_root(const char *path) {
  static char text[PATH_MAX];
  snprintf(text, sizeof text, "%s/%s", ROOT, path[0] == '/' ? path + 1 : path);
  return text;
}

static int is_directory(const char *path) {
  struct stat found;
  return !stat(path, &found) && S_ISDIR(found.st_mode);
}

static void make_directory(const char *path, mode_t mode) {
  if ((mkdir(path, mode) && errno != EEXIST) || !is_directory(path)) fail("making the directory %s", path);
}

static void mount_fresh(const char *type, const char *target, unsigned long flags, const char *options) {
  if (mount(type, target, type, flags, options)) fail("mounting %s at %s", type, target + strlen(ROOT));
}

static void mount_scratch(const char *target, uint64_t bytes, mode_t mode, unsigned long flags) {
  char options[64];
  snprintf(options, sizeof options, "size=%llu,mode=%o", (unsigned long long)bytes, mode);
  mount_fresh("tmpfs", target, flags, options);
}

// Opens a directory in this mount namespace, so that it can still be mounted after its path is hidden by another mount.
static int open_source(const char *path) {
  const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("opening %s", path);
  return fd;
}

// Opens the workspace, and refuses a link on its path, which a user may have put there since the worker's check.
static int open_workspace(const char *path) {
  const struct {
    uint64_t flags, mode, resolve;
  } how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  const int fd = syscall(OPENAT2, AT_FDCWD, path, &how, sizeof how);
  if (fd < 0) fail("opening the workspace %s", path);
  return fd;
}

static void bind(const char *source, const char *target) {
  if (mount(source, target, 0, MS_BIND | MS_REC, 0)) fail("mounting %s", target + strlen(ROOT));
}

static void bind_source(int fd, const char *target) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  bind(path, target);
}

// Adds restrictions to a mount. Keeps its present restrictions, because the kernel requires that in a user namespace.
static void restrict_mount(const char *target, unsigned long flags) {
  struct statvfs now;
  if (statvfs(target, &now)) fail("looking at %s", target);
  const unsigned long kept = now.f_flag & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME);
  const unsigned long relative = now.f_flag & ST_RELATIME ? MS_RELATIME : 0;
  if (mount(0, target, 0, MS_REMOUNT | MS_BIND | kept | relative | flags, 0))
    fail("restricting %s", target + strlen(ROOT));
}

static int is_private(const char *name) {
  static const char *const names[] = {".", "..", "proc", "tmp", "workspace", ".shellfleet", ".shellfleet-run"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i])) return 1;
  return 0;
}

// Shows one entry of the host's root directory in the session's: a link as a link, a directory or file by a bind mount.
static void mirror_entry(int host, const char *name) {
  const char *target = in_root(name);
  char source[64 + NAME_MAX], words[PATH_MAX];
  struct stat entry;
  if (fstatat(host, name, &entry, AT_SYMLINK_NOFOLLOW)) return; // removed since it was listed
  if (S_ISLNK(entry.st_mode)) {
    const ssize_t n = readlinkat(host, name, words, sizeof words - 1);
    if (n < 0) fail("reading the link /%s", name);
    words[n] = 0;
    if (symlink(words, target)) fail("making the link /%s", name);
    return;
  }
  if (S_ISDIR(entry.st_mode)) make_directory(target, 0755);
  else if (S_ISREG(entry.st_mode)) close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0444)); // else bind() fails
  else return;
  snprintf(source, sizeof source, "/proc/self/fd/%d/%s", host, name);
  bind(source, target);
}

static void mirror_root(void) {
  DIR *root = opendir("/");
  if (!root) fail("reading the root directory");
  for (struct dirent *entry; (entry = readdir(root));)
    if (!is_private(entry->d_name)) mirror_entry(dirfd(root), entry->d_name);
  closedir(root);
}

static void make_devices_private(const Plan *plan) {
  if (is_directory(in_root("dev/shm")))
    mount_scratch(in_root("dev/shm"), plan->scratch_bytes, 01777, PLAIN | MS_NOEXEC);
  if (is_directory(in_root("dev/mqueue"))) mount_fresh("mqueue", in_root("dev/mqueue"), PLAIN | MS_NOEXEC, 0);
  if (is_directory(in_root("dev/pts")))
    mount_fresh("devpts", in_root("dev/pts"), MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620");
}

// Mounts the session's own control group at the path that it has in a container, and no other group of the host.
static void show_cgroups(const Plan *plan, const int *sources) {
  if (!is_directory(in_root("sys/fs/cgroup"))) return;
  const int is_version_2 = plan->cgroups == 1 && !plan->cgroup[0].name[0];
  if (!is_version_2) mount_scratch(in_root("sys/fs/cgroup"), 64 << 10, 0755, PLAIN | MS_NOEXEC);
  for (int i = 0; i < plan->cgroups; i++) {
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s", in_root("sys/fs/cgroup"));
    if (!is_version_2) snprintf(target + strlen(target), sizeof target - strlen(target), "/%s", plan->cgroup[i].name);
    make_directory(target, 0755);
    bind_source(sources[i], target);
    restrict_mount(target, PLAIN | MS_NOEXEC | MS_RDONLY);
  }
  if (!is_version_2) restrict_mount(in_root("sys/fs/cgroup"), PLAIN | MS_NOEXEC | MS_RDONLY);
}

static void hide(const char *directory) {
  const char *target = in_root(directory);
  if (is_directory(target)) mount_scratch(target, 4096, 0, PLAIN | MS_NOEXEC | MS_RDONLY);
}

static void enter_root(void) {
  restrict_mount(ROOT, PLAIN | MS_RDONLY);
  if (chdir(ROOT)) fail("entering the new root directory");
  if (syscall(SYS_pivot_root, ".", ".")) fail("changing the root directory");
  if (umount2(".", MNT_DETACH)) fail("leaving the old root directory");
}

void enclose(const Plan *plan) {
  // The session receives the host's mounts and unmounts. Its own are not passed on to the host.
  if (mount(0, "/", 0, MS_SLAVE | MS_REC, 0)) fail("separating mounts from the host's");
  int cgroups[MOST_CGROUPS];
  const int keeper = plan->keeper ? open_source(plan->keeper) : -1;
  const int workspace = plan->workspace ? open_workspace(plan->workspace) : -1;
  for (int i = 0; i < plan->cgroups; i++) cgroups[i] = open_source(plan->cgroup[i].directory);

  mount_scratch(ROOT, 1 << 20, 0755, PLAIN);
  mirror_root();
  make_directory(in_root("tmp"), 01777);
  mount_scratch(in_root("tmp"), plan->scratch_bytes, 01777, PLAIN);
  if (is_directory(in_root("var/tmp"))) {
    char shared[32];
    snprintf(shared, sizeof shared, "%s", in_root("tmp"));
    bind(shared, in_root("var/tmp"));
  }
  make_directory(in_root("proc"), 0755);
  mount_fresh("proc", in_root("proc"), PLAIN | MS_NOEXEC, 0);
  make_devices_private(plan);
  show_cgroups(plan, cgroups);
  for (int i = 0; i < plan->hidden_directories; i++) hide(plan->hidden[i]);

  make_directory(in_root(".shellfleet"), 0755);
  if (keeper >= 0) {
    bind_source(keeper, in_root(".shellfleet"));
    restrict_mount(in_root(".shellfleet"), PLAIN | MS_RDONLY);
  }
  make_directory(in_root(".shellfleet-run"), 0755);
  mount_scratch(in_root(".shellfleet-run"), RUN_BYTES, 01777, PLAIN | MS_NOEXEC);
  make_directory(in_root("workspace"), 0755);
  if (workspace >= 0) {
    bind_source(workspace, in_root("workspace"));
    restrict_mount(in_root("workspace"), PLAIN);
  }
  enter_root();
  if (chdir("/workspace")) fail("entering /workspace");
}
