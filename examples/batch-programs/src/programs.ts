// Small programs: each answers on stdout what a problem asks about its argument.

type Language = 'python' | 'javascript';

export interface Program {
  id: string;
  language: Language;
  source: string;
  /** Argument → answer. */
  examples: readonly (readonly [string, string])[];
  /** Part of the examples that it answers rightly. Undefined for a program that does not build. */
  score: number | undefined;
}

interface Problem {
  name: string;
  /** Expressions over the text `x` and the number `n`, which is the version of the program. */
  python: string;
  javascript: string;
  answer(x: string, n: number): string;
  arguments: readonly string[];
}

const NUMBERS = ['0', '1', '7', '12', '30'];
const WORDS = ['a', 'noon', 'level up', 'Shell fleet', 'one two one'];

const PROBLEMS: readonly Problem[] = [
  {
    name: 'add',
    python: 'int(x) + n',
    javascript: 'Number(x) + n',
    answer: (x, n) => String(Number(x) + n),
    arguments: NUMBERS,
  },
  {
    name: 'remainder',
    python: 'int(x) % (n + 2)',
    javascript: 'Number(x) % (n + 2)',
    answer: (x, n) => String(Number(x) % (n + 2)),
    arguments: NUMBERS,
  },
  {
    name: 'fizzbuzz',
    python: '("fizz" if int(x) % 3 == 0 else "") + ("buzz" if int(x) % (n + 2) == 0 else "") or x',
    javascript: '(Number(x) % 3 === 0 ? "fizz" : "") + (Number(x) % (n + 2) === 0 ? "buzz" : "") || x',
    answer: (x, n) => (Number(x) % 3 === 0 ? 'fizz' : '') + (Number(x) % (n + 2) === 0 ? 'buzz' : '') || x,
    arguments: NUMBERS,
  },
  {
    name: 'divisors',
    python: 'sum(1 for d in range(1, int(x) + 1) if int(x) % d == 0) * n',
    javascript: 'Array.from({ length: Number(x) }, (_, d) => Number(x) % (d + 1)).filter((r) => r === 0).length * n',
    answer: (x, n) => {
      let count = 0;
      for (let divisor = 1; divisor <= Number(x); divisor++) if (Number(x) % divisor === 0) count++;
      return String(count * n);
    },
    arguments: NUMBERS,
  },
  {
    name: 'binary',
    python: 'bin(int(x) + n)[2:]',
    javascript: '(Number(x) + n).toString(2)',
    answer: (x, n) => (Number(x) + n).toString(2),
    arguments: NUMBERS,
  },
  {
    name: 'reverse',
    python: 'x[::-1] + "!" * n',
    javascript: '[...x].reverse().join("") + "!".repeat(n)',
    answer: (x, n) => [...x].reverse().join('') + '!'.repeat(n),
    arguments: WORDS,
  },
  {
    name: 'words',
    python: 'len(x.split()) + n',
    javascript: 'x.split(" ").length + n',
    answer: (x, n) => String(x.split(' ').length + n),
    arguments: WORDS,
  },
  {
    name: 'vowels',
    python: 'sum(c in "aeiou" for c in x) * n',
    javascript: '[...x].filter((c) => "aeiou".includes(c)).length * n',
    answer: (x, n) => String([...x].filter((letter) => 'aeiou'.includes(letter)).length * n),
    arguments: WORDS,
  },
  {
    name: 'rotate',
    python: 'x[n % len(x):] + x[:n % len(x)]',
    javascript: 'x.slice(n % x.length) + x.slice(0, n % x.length)',
    answer: (x, n) => x.slice(n % x.length) + x.slice(0, n % x.length),
    arguments: WORDS,
  },
  {
    name: 'different',
    python: 'len(set(x)) + n',
    javascript: 'new Set(x).size + n',
    answer: (x, n) => String(new Set(x).size + n),
    arguments: WORDS,
  },
];

const VERSIONS = 10;
/** Versions with a fault: one that does not build, and two that answer wrongly for some arguments. */
const BROKEN = 4;
const WRONG = [7, 9];

/** Step through the list of programs, so that any first part of them has several problems, languages and faults. */
const STEP = 77;

/** Returns the programs. Their number has no common divisor with STEP. */
export function makePrograms(): Program[] {
  const versions = Array.from({ length: VERSIONS }, (_, index) => index + 1);
  const all = versions.flatMap((version) =>
    PROBLEMS.flatMap((problem) => [toProgram(problem, 'python', version), toProgram(problem, 'javascript', version)]),
  );
  return all.map((_program, index) => all[(index * STEP) % all.length] as Program);
}

function toProgram(problem: Problem, language: Language, version: number): Program {
  const { name, answer } = problem;
  // A wrong program answers for its longest arguments what another version should.
  const isWrong = WRONG.includes(version);
  const given = (x: string) => (isWrong && x.length > 1 ? answer(x, version + 1) : answer(x, version));
  const examples = problem.arguments.map((x) => [x, answer(x, version)] as const);
  const right = examples.filter(([x, wanted]) => given(x) === wanted).length;
  return {
    id: `${name}/${language}/${version}`,
    language,
    source: toSource(problem, language, version, isWrong) + (version === BROKEN ? '\nreturn (' : ''),
    examples,
    score: version === BROKEN ? undefined : right / examples.length,
  };
}

function toSource({ python, javascript }: Problem, language: Language, version: number, isWrong: boolean): string {
  if (language === 'python') {
    const n = isWrong ? `${version} + (len(x) > 1)` : String(version);
    return `import sys\nx = sys.argv[1]\nn = ${n}\nprint(${python})\n`;
  }
  const n = isWrong ? `${version} + Number(x.length > 1)` : String(version);
  return `const x = process.argv[2];\nconst n = ${n};\nconsole.log(String(${javascript}));\n`;
}
