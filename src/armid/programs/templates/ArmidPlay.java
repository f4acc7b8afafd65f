package application;

import static com.kuka.roboticsAPI.motionModel.BasicMotions.positionHold;
import static com.kuka.roboticsAPI.motionModel.BasicMotions.ptp;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.inject.Inject;

import com.kuka.connectivity.fastRobotInterface.ClientCommandMode;
import com.kuka.connectivity.fastRobotInterface.FRIConfiguration;
import com.kuka.connectivity.fastRobotInterface.FRIJointOverlay;
import com.kuka.connectivity.fastRobotInterface.FRISession;
import com.kuka.roboticsAPI.applicationModel.RoboticsAPIApplication;
import com.kuka.roboticsAPI.deviceModel.LBR;
import com.kuka.roboticsAPI.motionModel.controlModeModel.PositionControlMode;

/**
@facts@
 */
public class ArmidPlay extends RoboticsAPIApplication {
    private static final String CLIENT_ADDRESS = "192.170.10.100";
    private static final boolean FULL_SPEED = false;

    @Inject
    private LBR lbr;

    @Override
    public void run() throws Exception {
        lbr.move(ptp(@start@).setJointVelocityRel(0.1));
        FRIConfiguration configuration = FRIConfiguration.createRemoteConfiguration(lbr, CLIENT_ADDRESS);
        configuration.setSendPeriodMilliSec(@period@);
        FRISession session = new FRISession(configuration);
        try {
            session.await(20, TimeUnit.SECONDS);
            FRIJointOverlay overlay = new FRIJointOverlay(session, ClientCommandMode.POSITION);
            int seconds = FULL_SPEED ? @full@ : @dry@;
            lbr.move(positionHold(new PositionControlMode(), seconds, TimeUnit.SECONDS).addMotionOverlay(overlay));
        } catch (TimeoutException problem) {
            getLogger().error("no good connection to the client within 20 s: " + problem.getMessage());
        } finally {
            session.close();
        }
    }
}
