// Operations on many small files at a time, so that a directory does not cost a round trip for each.
#ifndef BUNDLE_H
#define BUNDLE_H
#include "file_operation.h"

// Writes the files that `data` holds: for each u32 kind, u32 mode, u32 bytes of name, u32 bytes of content; name,
// content. Names are relative to the path. Kinds: d directory (which may exist), f file, l symbolic link (its content
// is the target), m change only the mode.
int bundle_unpack(const FileOperation *file);
// Reads the files that `data` names: names relative to the path, each ended by a zero byte. Prints for each u32 errno,
// u32 mode, u64 bytes of content, content. The contents of an reply have `length` bytes at most; a file that does not
// fit into the rest of them has the errno EFBIG.
int bundle_pack(const FileOperation *file);
// Returns the path of the file at which bundle_unpack failed.
const char *bundle_path(void);

#endif
