"""Who is pushing the arm? External torque from an identified model, with alarms set for a stated rate of false ones."""
