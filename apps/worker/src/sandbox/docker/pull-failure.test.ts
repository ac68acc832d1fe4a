import { describe, expect, test } from 'vitest';
import { pullFailed } from './pull-failure.ts';

describe('the error of a failed pull', () => {
  // Texts of Docker 20, Docker 27 and containerd.
  test.each([
    [
      '(HTTP code 500) server error - Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.0.2:53: no such host',
      'its registry docker.io cannot be reached from this host',
    ],
    ['Get "http://localhost:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused', 'cannot be reached'],
    ['toomanyrequests: You have reached your pull rate limit.', 'lets this host pull no more for a while'],
    ["pull access denied for private/img, repository does not exist or may require 'docker login'", 'asks for a login'],
    ['manifest for debian:13.99 not found: manifest unknown: manifest unknown', 'has no image of this name and tag'],
    ['failed to register layer: write /usr/x: no space left on device', 'the disk of the engine is full'],
    ['something new', 'for a reason that is in the context'],
  ])("explains the engine's text: %s", (engine, words) => {
    const error = pullFailed('private/img:1', 'docker.io', new Error(engine));
    expect(error.message).toContain(`The image private/img:1 is not on this host and could not be pulled: `);
    expect(error.message).toContain(words);
    expect(error.message).not.toContain(engine);
    expect(error.toJSON()).toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      context: { image: 'private/img:1', registry: 'docker.io', engine },
    });
    // A logger would write the text of a cause after the message.
    expect(error.cause).toBeUndefined();
  });
});
