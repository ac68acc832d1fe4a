import { describe, expect, test } from 'vitest';
import { safeEnv } from './own-container.ts';

const envOf = (...env: string[]) => safeEnv({ env }, '/srv/project');

describe('the variables of a second container', () => {
  // S3-25
  test('PATH keeps only directories of the image that the session cannot write to', () => {
    const path =
      '/usr/local/go/bin:/workspace/bin:bin:/srv/project/../project/bin::/tmp/x:/srv/projects/bin:/usr/bin:.';
    expect(envOf('HOME=/workspace', `PATH=${path}`)).toEqual(['PATH=/usr/local/go/bin:/srv/projects/bin:/usr/bin']);
  });

  test.each([[[]], [['PATH=']], [['PATH=/workspace:/tmp']]])(
    'uses the usual PATH when the session can write to all of %j',
    (env) => {
      expect(envOf(...env)).toEqual(['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin']);
    },
  );

  test('empties startup files of shells, and removes library directories that the session can write to', () => {
    const env = [
      'PATH=/bin',
      'BASH_ENV=~/.bashrc',
      'ENV=/etc/shrc',
      'LD_LIBRARY_PATH=/usr/lib/cuda',
      'LD_PRELOAD=a.so',
    ];
    expect(envOf(...env)).toEqual(['PATH=/bin', 'BASH_ENV=', 'ENV=', 'LD_PRELOAD=']);
    expect(envOf('PATH=/bin', 'LD_LIBRARY_PATH=/usr/lib:/srv/project/lib')).toEqual(['PATH=/bin', 'LD_LIBRARY_PATH=']);
  });
});
