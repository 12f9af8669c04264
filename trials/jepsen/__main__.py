from trials.jepsen.command import main

raise SystemExit(main())
