import { expect, test } from 'vitest';
import { safeEnv } from './own-container.ts';

const envOf = (...env: string[]) => safeEnv({ env }, '/srv/project');

test("programs come from the image's folders in which the session can write nothing (S3-25)", () => {
  const path = '/usr/local/go/bin:/workspace/bin:bin:/srv/project/../project/bin::/tmp/x:/srv/projects/bin:/usr/bin:.';
  expect(envOf('HOME=/workspace', `PATH=${path}`)).toEqual(['PATH=/usr/local/go/bin:/srv/projects/bin:/usr/bin']);
});

test.each([[[]], [['PATH=']], [['PATH=/workspace:/tmp']]])(
  'without such a folder in %j they are the usual ones',
  (env) => {
    expect(envOf(...env)).toEqual(['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin']);
  },
);

test('what an image lets shells read first is emptied, and libraries from folders of the session', () => {
  const env = ['PATH=/bin', 'BASH_ENV=~/.bashrc', 'ENV=/etc/shrc', 'LD_LIBRARY_PATH=/usr/lib/cuda', 'LD_PRELOAD=a.so'];
  expect(envOf(...env)).toEqual(['PATH=/bin', 'BASH_ENV=', 'ENV=', 'LD_PRELOAD=']);
  expect(envOf('PATH=/bin', 'LD_LIBRARY_PATH=/usr/lib:/srv/project/lib')).toEqual(['PATH=/bin', 'LD_LIBRARY_PATH=']);
});
