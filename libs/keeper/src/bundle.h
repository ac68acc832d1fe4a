// Operations on many small files at a time, because a round trip for each file would be slow.
#ifndef BUNDLE_H
#define BUNDLE_H
#include "file_operation.h"

// Writes the files in `data`: for each u32 kind, u32 mode, u32 name bytes, u32 content bytes, name, content. Names are
// relative to the path. Kinds: d directory (may exist), f file, l symbolic link (to the content), m only the mode.
int bundle_unpack(const FileOperation *file);
// Reads the files that `data` names, each relative to the path and ended by a zero byte. Prints for each u32 errno, u32
// mode, u64 content bytes, content: at most `length` bytes in all. The errno EFBIG stands for a file that does not fit.
int bundle_pack(const FileOperation *file);
// Returns the path of the file at which bundle_unpack failed.
const char *bundle_path(void);

#endif
