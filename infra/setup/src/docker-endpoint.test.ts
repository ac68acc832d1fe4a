import { describe, expect, test } from 'vitest';
import { candidateDockerHosts, parseDockerHost } from './docker-endpoint.ts';

describe('the address of Docker', () => {
  test.each([
    ['unix:///run/a.sock', { dockerHost: 'unix:///run/a.sock', socketPath: '/run/a.sock' }],
    ['tcp://10.0.0.2:2375', { dockerHost: 'tcp://10.0.0.2:2375', host: '10.0.0.2', port: 2375 }],
    ['tcp://[::1]:2375', { dockerHost: 'tcp://[::1]:2375', host: '::1', port: 2375 }],
    ['ssh://somebody@somewhere', undefined],
    ['', undefined],
  ])('is read from %s', (dockerHost, endpoint) => {
    expect(parseDockerHost(dockerHost)).toEqual(endpoint);
  });

  test('is only that of DOCKER_HOST when it is set', () => {
    expect(candidateDockerHosts({ DOCKER_HOST: 'tcp://a:1' }, '/home/a')).toEqual(['tcp://a:1']);
  });

  test('is the system socket before those of a desktop or a rootless engine', () => {
    expect(candidateDockerHosts({ XDG_RUNTIME_DIR: '/run/user/1' }, '/home/a')).toEqual([
      'unix:///var/run/docker.sock',
      'unix:///home/a/.docker/run/docker.sock',
      'unix:///home/a/.docker/desktop/docker.sock',
      'unix:///home/a/.colima/default/docker.sock',
      'unix:///run/user/1/docker.sock',
    ]);
  });
});
