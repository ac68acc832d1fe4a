import { describe, expect, test } from 'vitest';
import { planVolumes } from './image-volumes.ts';

describe('volumes of an image', () => {
  test('each volume becomes one directory, unless the workspace is mounted there', () => {
    expect(planVolumes('redis', ['/data', '/data/', '/var//lib/redis/', '/tmp', '/workspace'], undefined)).toEqual([
      '/data',
      '/tmp',
      '/var/lib/redis',
      '/workspace',
    ]);
    expect(planVolumes('redis', ['/data', '/workspace'], '/data')).toEqual(['/workspace']);
    expect(planVolumes('redis', ['/srv'], '/srv/project')).toEqual(['/srv']);
  });

  test.each([
    ['/', undefined],
    ['relative', undefined],
    ['/usr/local', undefined],
    ['/run/lock', undefined],
    ['/etc', undefined],
    ['/.shellfleet', undefined],
    ['/var/run/x', undefined],
    ['/srv/../etc', undefined],
    ['/workspace/cache', '/workspace'],
  ])('refuses an image with the volume %s (workspace at %s)', (volume, workspace) => {
    expect(() => planVolumes('odd', ['/data', volume], workspace)).toThrow(
      /^The image odd declares the volume .*, which is a directory of/,
    );
  });
});
