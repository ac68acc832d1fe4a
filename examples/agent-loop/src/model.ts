/** Action that waits until background processes of a command have printed the text `until`. */
export interface ReadLate {
  type: 'read-late';
  commandId: string;
  until: string;
}

export type Action =
  | { type: 'write'; path: string; text: string }
  | { type: 'run'; script: string }
  | ReadLate
  | { type: 'list-background' }
  | { type: 'done'; succeeded: boolean };

export interface Decision {
  thought: string;
  action: Action;
}

const port = 8000;
const path = '/workspace/server.mjs';
const start = `node ${path} & SERVER=$!`;

/**
 * Returns the source of a server that adds two numbers of a query. `add` is the expression for the sum; the first one
 * joins texts.
 */
const server = (add: string) => `import { createServer } from 'node:http';
createServer((request, response) => {
  const { searchParams: numbers } = new URL(request.url, 'http://localhost');
  const sum = ${add};
  console.log(\`\${request.url} gives \${typeof sum} \${sum}\`);
  response.end(String(sum));
}).listen(${port}, '127.0.0.1', () => console.log('ready'));
`;

/** Script that waits until the server listens, and then sends it a request. */
const ask = `until node -e 'fetch("http://127.0.0.1:${port}/?a=2&b=3").then(async (answer) => console.log("2 + 3 =", await answer.text()))' 2>/dev/null
do sleep 0.1; done`;

/** Stands in for a language model: chooses the next action from all that was observed so far. */
export function decide(observations: readonly string[]): Decision {
  const last = observations.at(-1) ?? '';
  switch (observations.length) {
    case 0: {
      const text = server("numbers.get('a') + numbers.get('b')");
      return { thought: 'I write a server that adds.', action: { type: 'write', path, text } };
    }
    case 1:
      return { thought: 'I start it in the background.', action: { type: 'run', script: start } };
    case 2:
      return { thought: 'I ask it for 2 + 3.', action: { type: 'run', script: ask } };
    case 3: {
      if (last.includes('2 + 3 = 5')) return { thought: 'It adds.', action: { type: 'done', succeeded: true } };
      const [, commandId = ''] = /^command (\S+)/.exec(observations[1] ?? '') ?? [];
      return {
        thought: 'That is wrong. I read what the server printed since it was started.',
        action: { type: 'read-late', commandId, until: 'gives' },
      };
    }
    case 4: {
      const text = server("Number(numbers.get('a')) + Number(numbers.get('b'))");
      return { thought: 'It joins strings. I make numbers of them.', action: { type: 'write', path, text } };
    }
    case 5: {
      const script = `kill "$SERVER" && wait "$SERVER"; ${start}`;
      return { thought: 'I replace the server: the shell still knows its process.', action: { type: 'run', script } };
    }
    case 6:
      return { thought: 'I ask again.', action: { type: 'run', script: ask } };
    case 7:
      return { thought: 'Is the new server the only one?', action: { type: 'list-background' } };
    default: {
      const succeeded = observations[6]?.includes('2 + 3 = 5') === true && last === `node ${path}`;
      return { thought: succeeded ? 'It adds.' : 'It does not work.', action: { type: 'done', succeeded } };
    }
  }
}
