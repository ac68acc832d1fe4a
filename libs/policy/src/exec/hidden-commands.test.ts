import { describe, expect, test } from 'vitest';
import { evaluate } from './evaluate.ts';

const forbidsPush = [{ pattern: ['git', 'push'], decision: 'forbid' as const }];
const onRequest = (script: string) => evaluate(script, { approval: 'on-request' });

/** Programs that start the command in the words after their name. */
const LAUNCHERS =
  `sudo doas env command nohup nice|nice -n 5|ionice -c 3|time|timeout 5|setsid|stdbuf -o0|chroot /x|flock x|prlimit|prlimit --cpu=1|choom -n 0
  setarch x86_64|linux64|i386|fakeroot|faketime now|systemd-run|systemd-run --user -p A=B|pkexec|start-stop-daemon -S -x|cpulimit -l 5|unbuffer|valgrind
  xvfb-run -a|dbus-run-session --|logsave f|runcon x|capsh --|sg x|bwrap --ro-bind / /|proot -r x|firejail|rlwrap|systemd-inhibit|ssh h|ssh -p 22 h
  script -c|su x -c|watch -n 1|xargs|find . -exec|fd -x|busybox|/lib64/ld-linux-x86-64.so.2|npm exec --|docker exec c|kubectl exec p --|parallel|strace -f`
    .split(/\||\n/)
    .map((launcher) => launcher.trim());

describe('a command that a launcher starts', () => {
  test.each(LAUNCHERS)('is compared with rules and with dangerous commands: %s', (launcher) => {
    expect(evaluate(`${launcher} git push`, { execPolicy: forbidsPush }).requirement).toBe('forbidden');
    expect(onRequest(`${launcher} rm -rf x`)).toMatchObject({
      requirement: 'needs-approval',
      classification: 'dangerous',
    });
  });

  test.each([
    "timeout 5 sh -c 'true;git push'",
    "timeout 5 sh -c 'true&&git push'",
    "timeout 5 sh -c 'true|git push'",
    "timeout 5 sh -c 'true||git push'",
    "sudo sh -c 'git push'",
    "script -c'git push'",
    "script -qc'git push' log",
    "script --command='git push'",
    "su x -c'git push'",
    "sudo su x '-cgit push'",
    "env -S'git push'",
    "env --split-string='git push'",
    "ssh h 'git push'",
    "ssh h git 'push; x'",
    "watch 'git push'",
    "alias x='git push'",
    "trap 'git push' EXIT",
    "parallel 'git push' ::: x",
    "docker run image sh -c 'git push'",
    `sh -c "sh -c 'git push'"`,
  ])('is found in a script that is an argument of the launcher: %s', (script) => {
    expect(evaluate(script, { execPolicy: forbidsPush }).requirement).toBe('forbidden');
  });

  // `osh` is a shell that is not on the list of launchers.
  test.each(["'true;reboot'", "'true&&reboot'", "'true||reboot'", "'true|reboot'", "'true&reboot'", "'true\nreboot'"])(
    'is found in an argument that is a script without blanks: %s',
    (script) => {
      for (const launcher of ['timeout 5 osh -c', 'timeout 5 sh -c', 'sudo'])
        expect([launcher, onRequest(`${launcher} ${script}`).classification]).toEqual([launcher, 'dangerous']);
    },
  );

  test.each([
    'sudo $x',
    'sudo -u root $x',
    'prlimit --cpu=1 "$x"',
    'timeout 5 $x',
    'timeout $x',
    'sh -c "$x"',
    'bash -lc "make $x"',
    'su x -c "$x"',
    'eval "$x"',
    'ssh h "it\'s"',
    `sh -c 'git push "'`,
    'find . -exec $x {} +',
    'docker exec c $x',
    String.raw`sh -c "sh -c \"sh -c \\\"sh -c 'ls'\\\"\""`,
  ])('needs an approval when its words cannot be read: %s', (script) => {
    expect(onRequest(script)).toMatchObject({
      requirement: 'needs-approval',
      reason: expect.stringMatching(/starts what cannot be read\.$/),
    });
    expect(evaluate(script, { approval: 'never' }).requirement).toBe('skip');
    expect(evaluate(script, { approval: { reject: { sandboxApproval: true } } }).requirement).toBe('forbidden');
  });

  test.each([
    'timeout 5 make $x',
    'env A=$x make',
    'nice -n 5 make "$x"',
    'find "$x" -name "$y"',
    'xargs grep "$x"',
    'npm rm -f x',
    'git rm -f x',
    'docker rm -f x',
    'git commit -m "it is $x"',
    `xargs grep "it's"`,
    'sh x.sh a "$x"',
  ])('needs no approval if words other than its name are expanded or look dangerous: %s', (script) => {
    expect(onRequest(script)).toMatchObject({ requirement: 'skip', classification: 'unknown' });
  });
});
