import { describe, expect, test } from 'vitest';
import { sandboxDenial } from './sandbox-denial.ts';

const restricted = { sandboxed: true, network: 'restricted' } as const;

describe('a denial by the sandbox', () => {
  test.each([
    ['files', 1, "touch: cannot touch '/etc/x': Read-only file system"],
    ['files', 1, 'sh: 1: cannot create /etc/x: Permission denied'],
    ['files', 1, "mkdir: cannot create directory '/x': Operation not permitted"],
    ['files', 1, "PermissionError: [Errno 13] Permission denied: '/etc/x'"],
    ['files', 243, 'npm error code EACCES\nnpm error path /usr/lib/node_modules'],
    ['network', 6, 'curl: (6) Could not resolve host: example.org'],
    ['network', 1, 'connect: Network is unreachable'],
    ['network', 4, "wget: unable to resolve host address 'example.org'"],
    ['network', 1, 'npm error request to https://example.org/ failed, reason: getaddrinfo EAI_AGAIN example.org'],
    ['network', 1, 'socket.gaierror: [Errno -3] Temporary failure in name resolution'],
    ['network', 56, 'curl: (56) CONNECT tunnel failed, response 403'],
    ['system-call', 159, 'Bad system call (core dumped)'],
  ] as const)('of %s is recognised with exit code %i from %j', (denied, exitCode, output) => {
    const line = output
      .split('\n')
      .find((printed) => sandboxDenial({ exitCode, output: printed, sandbox: restricted }));
    expect(sandboxDenial({ exitCode, output: `begin\n${output}\n`, sandbox: restricted })).toEqual({ denied, line });
  });

  // A sandbox without sockets, such as Codex's, refuses sockets with the message for files.
  test.each([
    ['network', 'socket: Operation not permitted'],
    [
      'network',
      'Traceback (most recent call last):\n  File "/usr/lib/python3.11/socket.py", line 233, in __init__\n    _socket.socket.__init__(self, family, type, proto, fileno)\nPermissionError: [Errno 1] Operation not permitted',
    ],
    ['network', 'Error: connect EPERM 10.0.0.1:443 - Local (undefined:undefined)'],
    ['files', "socket: closed\nmkdir: cannot create directory '/x': Operation not permitted"],
    ['files', 'chown: Operation not permitted'],
  ] as const)('is about %s when a system call is refused: %j', (denied, output) => {
    expect(sandboxDenial({ exitCode: 1, output, sandbox: restricted })?.denied).toBe(denied);
    const full = { sandboxed: true, network: 'full' } as const;
    expect(sandboxDenial({ exitCode: 1, output, sandbox: full })?.denied).toBe('files');
  });

  // S2-18
  test.each([
    ['an exit code that grep has', 1, ''],
    ['an exit code that grep has', 2, 'grep: x: No such file or directory'],
    ['a program that is not there', 127, 'sh: 1: curl: not found'],
    ['a file that is not executable', 126, 'sh: 1: ./x: Permission denied'],
    ['a test that fails', 1, '1 failed, 3 passed'],
    ['a server that is not started', 7, 'curl: (7) Failed to connect to localhost port 80: Connection refused'],
    ['words in the middle of a line', 1, 'x: Permission denied means that you may not read it'],
    ['a success that prints it', 0, 'cat: x: Permission denied'],
    ['a command without an exit code', null, 'cat: x: Permission denied'],
    ['a report ten lines before the end', 1, `cat: x: Permission denied\n${'next\n'.repeat(10)}`],
  ])('is not found for %s (exit code %s, %j)', (_what, exitCode, output) => {
    expect(sandboxDenial({ exitCode, output, sandbox: restricted })).toBeUndefined();
  });

  // S2-18
  test('is not found without a sandbox', () => {
    const output = 'cat: x: Permission denied';
    const sandbox = { sandboxed: false, network: 'full' } as const;
    expect(sandboxDenial({ exitCode: 1, output, sandbox })).toBeUndefined();
  });

  test('is not found for a failure of the network that the sandbox does not withhold', () => {
    const output = 'curl: (6) Could not resolve host: example.org';
    const sandbox = { sandboxed: true, network: 'full' } as const;
    expect(sandboxDenial({ exitCode: 6, output, sandbox })).toBeUndefined();
  });

  test('is looked for within bounded time in a megabyte without a line end', () => {
    const output = ': permission denied '.repeat(50_000);
    expect(sandboxDenial({ exitCode: 1, output, sandbox: restricted })).toMatchObject({ denied: 'files' });
  });
});
