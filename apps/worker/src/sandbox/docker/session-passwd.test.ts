import { describe, expect, test } from 'vitest';
import { withUser } from './session-passwd.ts';

describe('the file of users', () => {
  test("adds a name for the session's uid once, and keeps the image's users", () => {
    const image =
      'root:x:0:0:root:/root:/bin/sh\nsession:x:7:7::/:/bin/sh\nold:x:200000:200000::/:/bin/sh\nnode:x:1000:1000::/:/bin/sh\n';
    expect(withUser(image, 200_000)).toBe(
      'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/:/bin/sh\nsession:x:200000:200000::/workspace:/bin/sh\n',
    );
    expect(withUser('', 1_001)).toBe('session:x:1001:1001::/workspace:/bin/sh\n');
  });
});
