// The folder of the host that is mounted as the session's workspace. Whoever mounted it opened a path, and another
// session may have put a link on that path since the worker judged it.
#ifndef WORKSPACE_H
#define WORKSPACE_H

// 1 when the folder that SF_WORKSPACE names (device:inode) is mounted at the path that it names behind them, or when it
// is not set.
int workspace_is_expected(void);

#endif
