// Many files in one operation, so that a directory of small ones is not a round trip for each.
#ifndef BUNDLE_H
#define BUNDLE_H
#include "file_operation.h"

// `data`: records of u32 kind, u32 mode, u32 bytes of name, u32 bytes of content; name, content. Names are relative to
// the path. Kinds: d directory (it may be there), f file, l symbolic link (content: its target), m only the mode.
int bundle_unpack(const FileOperation *file);
// `data`: names relative to the path, each ended by a zero byte. Prints for each u32 errno, u32 mode, u64 bytes of
// content, content. EFBIG: the file does not fit into the rest of the answer, whose size is in `length`.
int bundle_pack(const FileOperation *file);
// The file at which it failed.
const char *bundle_path(void);

#endif
